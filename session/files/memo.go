package files

import "sync"

// memo remembers what is costly to find out, and lets go of what wasn't put there for long.
// The zero value is ready; it is safe for concurrent use.
type memo[K comparable, V any] struct {
	mu        sync.Mutex
	late, old map[K]V // guarded by mu; old is what late was when it had half of what is remembered
}

func (m *memo[K, V]) get(key K) (v V, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, known = m.late[key]; !known {
		v, known = m.old[key]
	}
	return v, known
}

// put remembers v; most is how many are remembered in all.
func (m *memo[K, V]) put(key K, v V, most int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.late[key]; m.late == nil || !known && len(m.late) >= most/2 {
		m.late, m.old = make(map[K]V), m.late
	}
	m.late[key] = v
}

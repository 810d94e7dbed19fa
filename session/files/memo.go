package files

import "sync"

// memo remembers what is costly to find out, at most so much of it: when it is full
// it forgets all. The zero value is ready; it is safe for concurrent use.
type memo[K comparable, V any] struct {
	mu sync.Mutex
	of map[K]V // guarded by mu
}

func (m *memo[K, V]) get(key K) (v V, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, known = m.of[key]
	return v, known
}

func (m *memo[K, V]) put(key K, v V, most int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil || len(m.of) >= most {
		m.of = make(map[K]V)
	}
	m.of[key] = v
}

package launch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"stepbox/session/seal"
	"stepbox/store"
)

// ringIn is where the keys are that seal records.
func ringIn(dir string) seal.Ring {
	return seal.Ring{Dir: filepath.Join(dir, "keys"), Agent: os.Getenv("SSH_AUTH_SOCK")}
}

// sealDeadFor is how long the next command waits for an ssh-agent that seals what a
// dead session left.
const sealDeadFor = 3 * time.Second

// sealDead packs what sessions whose supervisors died have of their terminals, and
// seals what is recorded of them, as who finds it. One that goes on already isn't touched.
func sealDead(ctx context.Context, st *store.Store, r seal.Ring, ids []string) error {
	ctx, cancel := context.WithTimeout(ctx, sealDeadFor)
	defer cancel()
	var failures []error
	for _, id := range ids {
		release, err := st.Own(id)
		if errors.Is(err, store.ErrOwned) {
			continue
		}
		if err == nil {
			var j *store.Journal
			if j, err = st.Journal(id); err == nil {
				err = j.Close()
			}
			if !errors.Is(err, store.ErrNotFound) { // else it died before it had a row
				_, serr := seal.Seal(ctx, st, r, id, seal.After)
				failures = append(failures, err, serr)
			}
			failures = append(failures, release())
			continue
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

package rules

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"stepbox/policy"
	"stepbox/policy/source"
)

// maxProfiles bounds how many of a person's own are read.
const maxProfiles = 200

// Profiles is the folder of a person's own profiles, beside their policy; "": it isn't
// known where that is.
func Profiles(home, config string) string {
	if file := User(home, config); file != "" {
		return filepath.Join(filepath.Dir(file), "profiles")
	}
	return ""
}

// Broken is a file with a profile that can't be used.
type Broken struct {
	File string
	Err  error
	of   *policy.Profile // as far as it could be read; nil: not at all
}

// MayBe says whether it may be the profile of a program.
func (b Broken) MayBe(argv []string, file string) bool { return b.of == nil || b.of.MayBe(argv, file) }

// LookProfiles are the built-in profiles and a person's own, those that are in a folder as
// NAME.yaml, and what can't be used of these.
func LookProfiles(dir string) (*policy.Profiles, []Broken) {
	entries, err := os.ReadDir(dir)
	if dir == "" || errors.Is(err, fs.ErrNotExist) {
		return policy.BuiltinProfiles(), nil
	}
	if err == nil {
		err = mine(dir)
	}
	if err != nil {
		return policy.BuiltinProfiles(), []Broken{{File: dir, Err: fmt.Errorf("%s: your profiles can't be read: %w", dir, err)}}
	}
	var own []*policy.Profile
	var broken []Broken
	for _, e := range entries {
		file := filepath.Join(dir, e.Name())
		if !strings.HasSuffix(file, ".yaml") || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if len(own)+len(broken) >= maxProfiles {
			broken = append(broken, Broken{File: dir, Err: fmt.Errorf("%s: more than %d profiles aren't read", dir, maxProfiles)})
			break
		}
		data, err := source.Person(file)
		if err != nil {
			broken = append(broken, Broken{File: file, Err: fmt.Errorf("%s: %w", file, err)})
			continue
		}
		p, err := policy.OwnProfile(file, data)
		if i := slices.IndexFunc(own, func(o *policy.Profile) bool { return o.Name == p.Name }); err == nil && i >= 0 {
			err = fmt.Errorf("%s: the profile of %s is called %s, too", file, own[i].File, p.Name)
		}
		if err != nil {
			broken = append(broken, Broken{file, err, p})
			continue
		}
		own = append(own, p)
	}
	return policy.BuiltinProfiles().With(own...), broken
}

// mine says why others could put profiles into a folder.
func mine(dir string) error {
	var st unix.Stat_t
	switch err := unix.Stat(dir, &st); {
	case err != nil:
		return err
	case st.Uid != 0 && int(st.Uid) != os.Getuid():
		return fmt.Errorf("the folder belongs to another user (uid %d), who could change what holds for you", st.Uid)
	case st.Mode&0o002 != 0:
		return fmt.Errorf("everybody can write to the folder (mode %04o); run chmod o-w on it", st.Mode&0o7777)
	}
	return nil
}

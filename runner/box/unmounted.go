package box

import (
	_ "unsafe" // for go:linkname

	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
)

// cgroupRoot is where libcontainer believes the cgroups of version 1 to be mounted. It
// makes no container where it finds none, though it needs none.
//
//go:linkname cgroupRoot github.com/opencontainers/cgroups/fs.cgroupRoot
var cgroupRoot string

// create makes a container, also where no cgroups are mounted.
func create(root, id string, config *configs.Config) (*libcontainer.Container, error) {
	if !HasCgroups() {
		cgroupRoot = "/sys/fs/cgroup"
		resources := config.Cgroups.Resources
		resources.SkipDevices = true // to make one without is allowed, to start it with this isn't
		defer func() { resources.SkipDevices = false }()
	}
	return libcontainer.Create(root, id, config)
}

// HasCgroups says whether any cgroups are mounted here.
func HasCgroups() bool {
	all, err := hierarchies()
	return err != nil || len(all) > 0
}

package runner

import (
	"bytes"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"stepbox/runner/box"
)

// The namespaces that a machine starts with have fixed numbers (linux/nsfs.h).
const (
	firstPIDNamespace    = 0xEFFFFFFC
	firstCgroupNamespace = 0xEFFFFFFB
)

// inContainer says whether this host is a container: its processes or cgroups aren't
// the machine's, or an engine that shares those left its mark.
func inContainer() bool {
	for name, first := range map[string]uint64{"pid": firstPIDNamespace, "cgroup": firstCgroupNamespace} {
		var st unix.Stat_t
		if unix.Stat("/proc/self/ns/"+name, &st) == nil && st.Ino != first {
			return true
		}
	}
	return exists("/.dockerenv") || exists("/run/.containerenv") || inPod()
}

// inPod says whether the container is one of Kubernetes, where other words mend it.
func inPod() bool {
	return os.Getenv("KUBERNETES_SERVICE_HOST") != "" || exists("/var/run/secrets/kubernetes.io")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// confinement is one of the ways in which containers keep sandboxes from being made.
type confinement struct {
	found  string // how it shows here; "" when it doesn't
	docker string // option that lifts it
	pod    string // what lifts it in a pod's description
}

// confinements looks for what this container's engine has put in the way.
func confinements() []confinement {
	list := []confinement{
		{docker: "--security-opt seccomp=unconfined", pod: "securityContext.seccompProfile.type: Unconfined"},
		{docker: "--security-opt apparmor=unconfined", pod: "securityContext.appArmorProfile.type: Unconfined"},
		{docker: "--security-opt systempaths=unconfined", pod: "securityContext.procMount: Unmasked, and hostUsers: false, which that takes"},
	}
	if filtered() {
		list[0].found = "its seccomp profile refuses system calls to all its programs"
	}
	if label, err := os.ReadFile("/proc/self/attr/current"); err == nil && bytes.HasSuffix(bytes.TrimRight(label, "\n\x00"), []byte(" (enforce)")) {
		list[1].found = "AppArmor confines it: " + strings.TrimRight(string(label), "\n\x00")
	}
	covered, _ := box.Submounts("/proc")
	if covered = slices.DeleteFunc(covered, coversNothing); len(covered) > 0 {
		list[2].found = "its /proc is covered in part, and the kernel gives no new one then: " + strings.Join(covered, ", ")
	}
	return list
}

// filtered says whether a seccomp filter was put over this program's system calls.
func filtered() bool {
	status, err := os.ReadFile("/proc/self/status")
	return err == nil && bytes.Contains(status, []byte("\nSeccomp:\t2\n"))
}

// coversNothing tells the folders of /proc that are there to be mounted on: the kernel keeps them empty, and gives a
// new /proc all the same (fs/namespace.c, mnt_already_visible). systemd mounts the first on every machine.
func coversNothing(path string) bool {
	return path == "/proc/sys/fs/binfmt_misc" || path == "/proc/fs/nfsd"
}

// containerFix is what lifts the confinements that were found, or all of them when
// none shows.
func containerFix() string {
	var docker, pod []string
	add := func(all bool) {
		for _, c := range confinements() {
			if all || c.found != "" {
				docker, pod = append(docker, c.docker), append(pod, c.pod)
			}
		}
	}
	if add(false); len(docker) == 0 {
		add(true)
	}
	if inPod() {
		return "start the pod with " + strings.Join(pod, "; ") + "; and a volume (emptyDir) for STEPBOX_DATA"
	}
	return "start the container with " + strings.Join(docker, " ") + ", and a volume for STEPBOX_DATA"
}

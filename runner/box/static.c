// A static glibc still loads shared libraries: for name services (nsswitch.conf
// says which) and for dlopen(3). They have to be of exactly the glibc that was
// linked, else the program crashes, and the linker warns of each. Stepbox needs
// none of it. It resolves names in Go (netdns=go in go.mod), knows users by
// number, and SQLite shall load no extensions. These take the place of the
// functions that would load something, for what asks for them without need
// (net, os/user, SQLite): they fail as if nothing were found.

#include <dlfcn.h>
#include <grp.h>
#include <netdb.h>
#include <pwd.h>
#include <stddef.h>

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **res) {
	*res = NULL;
	return EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *res) {}

int getnameinfo(const struct sockaddr *addr, socklen_t len, char *host, socklen_t hostlen, char *serv, socklen_t servlen, int flags) {
	return EAI_NONAME;
}

int getpwnam_r(const char *name, struct passwd *pwd, char *buf, size_t size, struct passwd **result) {
	*result = NULL;
	return 0; // getpwnam(3): no such user
}

int getpwuid_r(uid_t uid, struct passwd *pwd, char *buf, size_t size, struct passwd **result) {
	*result = NULL;
	return 0;
}

int getgrnam_r(const char *name, struct group *grp, char *buf, size_t size, struct group **result) {
	*result = NULL;
	return 0; // getgrnam(3): no such group
}

int getgrgid_r(gid_t gid, struct group *grp, char *buf, size_t size, struct group **result) {
	*result = NULL;
	return 0;
}

int getgrouplist(const char *user, gid_t group, gid_t *groups, int *n) {
	if (*n > 0)
		groups[0] = group;
	*n = 1;
	return 1;
}

// The linker calls this for dlopen: glibc's own is linked in all the same, for
// itself, so that another of that name would not keep it from warning.
void *__wrap_dlopen(const char *file, int mode) { return NULL; }

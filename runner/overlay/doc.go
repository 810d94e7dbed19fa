// Package overlay turns the upper directory of an overlayfs mount into
// checkpoints, says what differs between two of them or between one and the
// host's files, and puts the merged view back to any of them while the mount
// stays in use.
//
// The words are overlayfs' own: lower holds the host's files and is never
// written, upper holds what the sandbox wrote, merged is what the sandbox
// sees. A Scanner reads an upper from outside into a Manifest: an immutable
// tree of directory objects that name file contents by BLAKE3 hash. Contents
// and directory objects go through Bodies, so storing a checkpoint costs what
// changed since the last one. Diff compares manifests by content (a file that
// is in the upper but equals the lower isn't a change). PlanRestore works out,
// as plain data, how to get from one manifest to another; Execute carries that
// out below a directory descriptor of the merged view, as root of the
// sandbox's user namespace. A Watcher wakes its owner when the upper moves.
//
// Names are bytes: they are kept in Go strings, may hold anything but NUL and
// slash, and are never shown by this package. Paths are relative to the
// project, slash-separated, without a leading slash; the project itself is "".
//
// Trust: everything in an upper was made by the sandbox and is hostile. It is
// reached by directory descriptors only, symbolic links are never followed,
// nothing that could block is opened without O_NONBLOCK, and sizes and counts
// are bounded. Lower directories belong to the host, but the same rules hold
// for them. Stored objects are checked when they are decoded. Execute trusts
// its Plan and its Source, and nothing below the merged root.
//
// Concurrency: Manifest, Entry, Change and Plan are values to be read from any
// goroutine. Scanner and Lower lock themselves. Nothing here starts a
// goroutine that outlives the call, but Watcher, which Close ends.
//
// A checkpoint is only consistent when the sandbox is frozen while the last,
// incremental Scan runs, and so is a restore. Stores through a writable shared
// mapping aren't seen by a stat: see ScanOptions.Mapped.
package overlay

package project

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/codec"
	"stepbox/runner/overlay/content"
)

// Journals is a folder of journals, one for each time that steps were carried
// out. It must be of this user alone, and on the file system that keeps the
// bodies: what was in the project before is given up only after both are on disk.
type Journals struct {
	Dir    string // absolute
	Bodies content.Bodies
}

// Journal is one of them.
type Journal struct {
	Name    string
	Project string // the folder's path
	At      time.Time
	Phase   Phase
	Steps   []Step // by path; those that weren't so already
}

// Phase is what became of a journal's steps.
type Phase string

const (
	Begun   Phase = "begun"   // a process is at it, or left it half-way: Recover mends that
	Done    Phase = "done"    // all of it is in the project
	Failed  Phase = "failed"  // the project is as it was
	Undoing Phase = "undoing" // like Begun, the other way
	Undone  Phase = "undone"  // it was done, and taken back
)

// A journal is a file NAME.apply.STAGE, beside which its undoing has one of its
// own, NAME.undo.STAGE. The stage is part of the name because a rename either
// happened or didn't.
const (
	stageMaking    = "making"    // new files are made beside the old ones, of which none was touched
	stageMoving    = "moving"    // all new files are whole and on disk; they are put into their places
	stageReversing = "reversing" // they are taken out of their places again
	stageCleaning  = "cleaning"  // all are in their places; what was replaced is deleted
	stageDone      = "done"
	stageFailed    = "failed"
	stageOver      = "over" // done, and of a session that was removed: nothing can be undone by it
)

// record is a journal's file.
type record struct {
	in    Journals
	name  string
	undo  bool
	stage string

	id       string // of the names beside
	at       time.Time
	path     string // the project
	dev, ino uint64
	fsid     uint64 // statfs(2); device numbers may change over a reboot
	steps    []Step
	folders  []folder
	names    []name
}

const (
	recordMagic = "sbj1"
	idBytes     = 12
)

func (r *record) encode() []byte {
	b := append([]byte(nil), recordMagic...)
	id, _ := hex.DecodeString(r.id)
	b = append(b, id...)
	b = codec.AppendVarint(b, r.at.UnixNano())
	b = codec.AppendBytes(b, r.path)
	for _, n := range []uint64{r.dev, r.ino, r.fsid, uint64(len(r.steps))} {
		b = binary.AppendUvarint(b, n)
	}
	for i := range r.steps {
		s := &r.steps[i]
		b = appendState(appendState(codec.AppendBytes(b, s.Path), &s.Old), &s.New)
	}
	b = appendFolders(b, r.folders)
	for _, n := range r.names {
		b = codec.AppendBytes(binary.AppendUvarint(b, n.file), n.path)
	}
	sum := content.Sum(b)
	return append(b, sum[:]...)
}

// decodeHead reads what encode wrote up to the project's path. All of it must be as it was.
func decodeHead(b []byte) (*record, *codec.Decoder, error) {
	var sum content.Hash
	if len(b) < len(sum) || content.Sum(b[:len(b)-len(sum)]) != content.Hash(b[len(b)-len(sum):]) {
		return nil, nil, errors.New("its checksum is wrong: it was changed or cut short")
	}
	d := codec.NewDecoder(b[:len(b)-len(sum)])
	d.Magic(recordMagic)
	r := &record{id: hex.EncodeToString(d.Take(idBytes)), at: time.Unix(0, d.Varint()), path: string(d.Bytes())}
	return r, d, d.Failed()
}

// decodeRecord reads what encode wrote; what doesn't say the truth about itself,
// or names what is never written, is refused.
func decodeRecord(b []byte) (*record, error) {
	r, d, err := decodeHead(b)
	if err != nil {
		return nil, err
	}
	for _, n := range []*uint64{&r.dev, &r.ino, &r.fsid} {
		*n = d.Uvarint(1<<64 - 1)
	}
	for range d.Count(3) {
		s := Step{Path: string(d.Bytes())}
		s.Old, s.New = readState(d), readState(d)
		r.steps = append(r.steps, s)
	}
	r.folders = readFolders(d)
	for d.More() {
		r.names = append(r.names, name{d.Uvarint(1<<64 - 1), readPath(d)})
	}
	err = d.End()
	if err == nil {
		err = valid(r.steps)
	}
	if err == nil && (!bytes.Equal(r.encode(), b) || !filepath.IsAbs(r.path) || filepath.Clean(r.path) != r.path) {
		err = codec.ErrForm
	}
	return r, err
}

func validName(name string) bool {
	return name != "" && len(name) <= 128 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

func (r *record) file(stage string) string {
	way := "apply"
	if r.undo {
		way = "undo"
	}
	return filepath.Join(r.in.Dir, r.name+"."+way+"."+stage)
}

// begin writes a new journal, under a name that isn't a journal's until it is
// whole, so that it is on disk before anything else is.
func (r *record) begin() error {
	tmp := r.file("new")
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("cannot begin a journal: %w", explain(err))
	}
	crashPoint()
	if _, err = f.Write(r.encode()); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("cannot write journal %q: %w", tmp, errors.Join(explain(err), os.Remove(tmp)))
	}
	r.stage = "new"
	return r.become(stageMaking)
}

// become renames the journal to its next stage, on disk too. An undoing that
// failed leaves no journal: what it should have undone stands as it did.
func (r *record) become(stage string) error {
	crashPoint()
	var err error
	if r.undo && stage == stageFailed {
		err = os.Remove(r.file(r.stage))
	} else {
		err = os.Rename(r.file(r.stage), r.file(stage))
	}
	if err == nil {
		crashPoint()
		r.stage = stage
		var d *os.File
		if d, err = os.Open(r.in.Dir); err == nil {
			err = errors.Join(d.Sync(), d.Close())
		}
	}
	if err != nil {
		return fmt.Errorf("cannot note in journal %q that it is %s: %w", r.name, stage, explain(err))
	}
	return nil
}

// parse takes a journal's file name apart; nil for any other name.
func (j Journals) parse(file string) *record {
	part := strings.Split(file, ".")
	if len(part) != 3 || !validName(part[0]) || part[1] != "apply" && part[1] != "undo" {
		return nil
	}
	switch part[2] {
	case stageMaking, stageMoving, stageReversing, stageCleaning, stageDone, stageFailed, stageOver:
		return &record{in: j, name: part[0], undo: part[1] == "undo", stage: part[2]}
	}
	return nil
}

// open says whether a process is at the journal or left it half-way.
func (r *record) open() bool {
	return r.stage != stageDone && r.stage != stageFailed && r.stage != stageOver
}

// find gives the journal files, unread.
func (j Journals) find() ([]*record, error) {
	entries, err := os.ReadDir(j.Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("cannot list journals: %w", err)
	}
	var out []*record
	for _, e := range entries {
		if r := j.parse(e.Name()); r != nil {
			out = append(out, r)
		} else if info, err := e.Info(); err == nil && filepath.Ext(e.Name()) == ".new" && time.Since(info.ModTime()) > time.Hour {
			_ = os.Remove(filepath.Join(j.Dir, e.Name())) // of a process that died while it wrote it
		}
	}
	return out, nil
}

// load reads the journal's file.
func (r *record) load() error { return r.loadBy(decodeRecord) }

func (r *record) loadBy(decode func([]byte) (*record, error)) error {
	b, err := os.ReadFile(r.file(r.stage))
	var got *record
	if err == nil {
		got, err = decode(b)
	}
	if err != nil {
		return fmt.Errorf("cannot read journal %q: %w", r.name, err)
	}
	got.in, got.name, got.undo, got.stage = r.in, r.name, r.undo, r.stage
	*r = *got
	return nil
}

// Read reads the journal of that name; os.ErrNotExist when there is none.
func (j Journals) Read(name string) (Journal, error) {
	l, err := j.one(name)
	if err != nil {
		return Journal{}, err
	}
	return l.Read()
}

// one is the journal of that name.
func (j Journals) one(name string) (Listed, error) {
	all, err := j.List()
	l, ok := all[name]
	if err == nil && !ok {
		err = fmt.Errorf("cannot read journal %q: %w", name, os.ErrNotExist)
	}
	return l, err
}

func phase(apply, undo *record) Phase {
	switch {
	case apply.open():
		return Begun
	case apply.stage == stageFailed:
		return Failed
	case undo == nil:
		return Done
	case undo.open():
		return Undoing
	}
	return Undone
}

// Listed is a journal that there is, unread.
type Listed struct {
	Phase Phase
	Over  bool // it only tells what was written, and names no bodies

	file, undo *record // undo is nil when there is none
}

// Read reads it. Of one that can't be read the time is told at which its file was written;
// of one that is gone, now.
func (l Listed) Read() (Journal, error) {
	r, err := l.loadBy(decodeRecord)
	if err != nil {
		r.at = time.Now()
		if st, err := os.Stat(r.file(r.stage)); err == nil {
			r.at = st.ModTime()
		}
	}
	return Journal{r.name, r.path, r.at, l.Phase, r.steps}, err
}

// Project reads which folder it is of, and no more than it takes to be sure of that.
func (l Listed) Project() (string, error) {
	r, err := l.loadBy(func(b []byte) (*record, error) {
		r, _, err := decodeHead(b)
		return r, err
	})
	return r.path, err
}

// loadBy loads it, also if it was retired since it was listed.
func (l Listed) loadBy(decode func([]byte) (*record, error)) (record, error) {
	r := *l.file
	err := r.loadBy(decode)
	if errors.Is(err, os.ErrNotExist) {
		r.stage = stageOver
		err = r.loadBy(decode)
	}
	return r, err
}

// List lists the journals that there are, by name.
func (j Journals) List() (map[string]Listed, error) {
	found, err := j.find()
	undo, out := map[string]*record{}, map[string]Listed{}
	for _, r := range found {
		if r.undo {
			undo[r.name] = r
		}
	}
	for _, r := range found {
		if !r.undo {
			out[r.name] = Listed{phase(r, undo[r.name]), r.stage == stageOver, r, undo[r.name]}
		}
	}
	return out, err
}

// Retire has a journal only tell what was written, since the session is removed that it
// is of. One of what doesn't stand is removed.
func (j Journals) Retire(name string) error {
	l, err := j.one(name)
	switch {
	case err != nil || l.Over:
		return err
	case l.Phase == Done:
		return l.file.become(stageOver)
	}
	return j.Remove(name)
}

// Remove forgets a journal. One that is Begun or Undoing stays, unless it can't be
// read or its project is gone, so that nobody could recover it.
func (j Journals) Remove(name string) error {
	l, err := j.one(name)
	if err != nil {
		return err
	}
	for _, r := range []*record{l.undo, l.file} {
		if r == nil {
			continue
		}
		if r.open() && r.load() == nil {
			if f, err := Open(r.path); err == nil {
				mine := f.is(r)
				_ = f.Close()
				if mine {
					return fmt.Errorf("cannot remove journal %q: %w", name, ErrUnfinished)
				}
			}
		}
		if err := os.Remove(r.file(r.stage)); err != nil {
			return fmt.Errorf("cannot remove a journal: %w", err)
		}
	}
	return nil
}

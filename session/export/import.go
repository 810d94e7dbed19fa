package export

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"stepbox/session/api"
	"stepbox/session/screen"
	"stepbox/store"
)

// maxImport bounds a recording, in bytes.
const maxImport = 4 << 30

// unnamed is what an imported session is called after, whose file has no name for one.
const unnamed = "import"

// Import makes an ended session of a terminal recording, whose file is named. It can
// be replayed and searched; it has no actions and no files. It ends when it was
// imported, so that its events and what was printed are in one course. What the file
// says nobody vouches for, and the session says so.
func (e *Exporter) Import(ctx context.Context, file string, r io.Reader) (out api.Imported, err error) {
	e.under.RLock()
	defer e.under.RUnlock()
	spool, err := e.spool(r)
	if err != nil {
		return out, err
	}
	defer spool.Close()
	look := castReader{} // how long it is has to be known first
	if err := look.read(spool, func(take) error { return ctx.Err() }); err != nil {
		return out, err
	}
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return out, fmt.Errorf("cannot read the recording: %w", err)
	}
	name, err := e.free(ctx, nameOf(file))
	if err != nil {
		return out, err
	}
	now, command := time.Now().UTC(), api.Escape(api.Trim(cmp.Or(look.header.Command, filepath.Base(file)), 4096))
	s := api.Session{
		ID: e.NewID(), Name: name, Stepbox: api.Build(), Agent: api.ImportAgent, Mode: api.ModeWatch, State: api.SessionRunning,
		Command: "(half an import) " + command, Workspace: api.Escape(file), Folder: file,
		StartedAt: now.Add(-look.at), Cols: look.header.Width, Rows: look.header.Height, Warnings: []string{
			"this was recorded elsewhere and imported from a file: Stepbox can't tell whether it happened so",
		},
	}
	if t := look.header.Timestamp; t > 0 && t < now.Unix() {
		s.Warnings = append(s.Warnings, "the file says that it was recorded at "+time.Unix(t, 0).UTC().Format(time.RFC3339))
	}
	if t := look.header.Title; t != "" {
		s.Warnings = append(s.Warnings, "the file says that it is called “"+api.Escape(api.Trim(t, 200))+"”")
	}
	doc, err := json.Marshal(s)
	if err != nil {
		return out, err
	}
	release, err := e.Store.Own(s.ID) // nobody removes it or misses its seal by then
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, release()) }()
	if s.Number, err = e.Store.CreateSession(ctx, s.ID, doc); err != nil {
		return out, err
	}
	defer func() {
		if err != nil { // half of it is nothing
			err = errors.Join(err, e.Store.Remove(context.WithoutCancel(ctx), s.ID), os.RemoveAll(e.Store.SessionDir(s.ID)+store.Removed))
		}
	}()
	if e.Seal != nil { // of one that is killed at its end the folder knows that it went on
		if err := e.Seal(ctx, s.ID, false); err != nil {
			return out, err
		}
	}
	if err := e.printed(ctx, s, spool); err != nil {
		return out, err
	}
	s.Command, s.State, s.EndedAt, s.EndedBy = command, api.SessionEnded, now, api.ByAgent
	if look.exit != nil {
		s.Exit = &api.Exit{Code: *look.exit}
	}
	if doc, err = json.Marshal(s); err != nil {
		return out, err
	}
	if _, err := e.Store.AppendForetold(ctx, s.ID, e.Foretell, store.Fact{Kind: store.KindSession, Event: "session.ended", Doc: doc}); err != nil {
		return out, err
	}
	if e.Seal != nil {
		if err := e.Seal(ctx, s.ID, true); err != nil {
			return out, err
		}
	}
	return api.Imported{Session: s, Skipped: look.said()}, nil
}

// spool keeps what is sent in a file without a name.
func (e *Exporter) spool(r io.Reader) (*os.File, error) {
	f, err := e.Store.Temp()
	if err != nil {
		return nil, err
	}
	n, err := io.Copy(f, io.LimitReader(r, maxImport+1))
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err == nil && n > maxImport {
		err = api.Problemf(api.CodeInvalid, "a recording of more than %d GB can't be imported", maxImport>>30)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// printed writes the recording to the session's journal, with the keyframes that
// seeking needs.
func (e *Exporter) printed(ctx context.Context, s api.Session, r io.Reader) (err error) {
	j, err := e.Store.JournalOf(s.ID, s.StartedAt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	sc := screen.New(s.Cols, s.Rows)
	c := castReader{}
	return c.read(r, func(t take) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		j.At(t.at)
		if j.Fresh() {
			cols, rows := sc.Size()
			if err := j.Keyframe(cols, rows, sc.Keyframe()); err != nil {
				return err
			}
		}
		if t.kind == resize {
			sc.Resize(t.cols, t.rows)
			return j.Resize(t.cols, t.rows)
		}
		_, _ = sc.Write(t.data) // it takes everything
		return j.Output(t.data)
	})
}

// free puts a number behind a name or id that a session has: that one is still meant by it.
func (e *Exporter) free(ctx context.Context, name string) (string, error) {
	all, err := e.History.Sessions(ctx)
	taken := make(map[string]bool)
	for _, s := range all {
		taken[s.Name], taken[s.ID] = true, true
	}
	base := name
	for i := 2; taken[name]; i++ {
		name = fmt.Sprintf("%s-%d", api.Trim(base, 56), i)
	}
	return name, err
}

// nameOf makes a session's name of a file's.
func nameOf(file string) string {
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	name = strings.Map(func(r rune) rune {
		if api.ValidName(string(r)) {
			return r
		}
		return '-'
	}, strings.ToValidUTF8(name, "-"))
	if name = strings.Trim(api.Trim(name, 64), ".-_"); name == "" {
		return unnamed
	}
	if api.Reserved(name) {
		return unnamed + "-" + api.Trim(name, 40)
	}
	return name
}

package display

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
	"golang.org/x/term"

	"stepbox/ui/config"
)

// Modes that hold while the interface is shown, and what undoes them.
const (
	entering = ansi.SetModeAltScreenSaveCursor + ordinary + ansi.ResetModeTextCursorEnable + ansi.SetModeBracketedPaste + ansi.SetModeFocusEvent +
		ansi.SetModeMouseButtonEvent + ansi.SetModeMouseExtSgr + ansi.SetModifyOtherKeys2 + ansi.RequestBackgroundColor
	// Where there is no other screen, as on Linux's console, what comes next begins on an empty one.
	leaving = ansi.ResetStyle + ansi.CursorHomePosition + ansi.EraseScreenBelow + ansi.ResetModifyOtherKeys + ansi.ResetModeMouseButtonEvent + ansi.ResetModeMouseExtSgr + ansi.ResetModeFocusEvent +
		ansi.ResetModeBracketedPaste + ansi.ResetModeAltScreenSaveCursor + ansi.SetModeTextCursorEnable
)

// ordinary undoes what a program that ran before may have left: looks, margins, inserting,
// an origin of its own, lines that don't wrap, another character set. Text is UTF-8: in a
// terminal that takes it for something else, parts of letters are control characters.
const ordinary = inUTF8 + ansi.ResetStyle + "\x1b[r" + ansi.ResetModeInsertReplace + ansi.ResetModeOrigin + ansi.SetModeAutoWrap + "\x1b(B\x0f"

const (
	inUTF8  = "\x1b%G"
	notUTF8 = "\x1b%@"
)

// keyboard is what is asked of terminals that tell keys apart: by codes of their own, and
// of keys whose letter isn't Latin which key of a US keyboard is in their place.
const keyboard = ansi.KittyDisambiguateEscapeCodes | ansi.KittyReportAlternateKeys

// Clusters says whether a terminal that reports so about mode 2027 can be told
// that what a person sees as one character takes the room of one.
func Clusters(v ansi.ModeSetting) bool {
	return v == ansi.ModeReset || v == ansi.ModeSet || v == ansi.ModePermanentlySet
}

// tty is the terminal: its driver's modes and its own.
type tty struct {
	in, out  *os.File // nil where it isn't a terminal
	w        io.Writer
	env      uv.Environ
	before   *term.State // of in
	style    int         // the cursor's; 0 is the terminal's own
	titled   bool
	clusters bool
	resized  chan os.Signal
}

func (t *tty) enter(in io.Reader, out io.Writer, env uv.Environ) error {
	t.w, t.env, t.resized = out, env, make(chan os.Signal, 1)
	if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		t.in = f
	}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		t.out = f
	}
	signal.Notify(t.resized, syscall.SIGWINCH)
	return t.begin()
}

// begin sets the terminal's modes, and leave puts them back; then it may begin again.
func (t *tty) begin() error {
	if t.in != nil {
		state, err := term.MakeRaw(int(t.in.Fd()))
		if err != nil {
			return fmt.Errorf("cannot read the terminal by keys: %w", err)
		}
		t.before = state
	}
	words := entering
	if answers(t.env) {
		words += ansi.RequestModeSynchronizedOutput + ansi.RequestModeUnicodeCore
	}
	// Its answer comes after all those and lets the first frame be drawn: that one is
	// whole already where a frame can be, and has the widths that the next ones have.
	words += areYouWell + ansi.PushKittyKeyboard(keyboard)
	_, err := io.WriteString(t.w, words)
	return err
}

func (t *tty) leave() {
	words := ansi.PopKittyKeyboard(1)
	if t.style != 0 {
		words += ansi.SetCursorStyle(0)
	}
	if t.titled {
		words += ansi.SetWindowTitle("")
	}
	if t.clusters {
		words += ansi.ResetModeUnicodeCore
	}
	if name, unicode := config.Language(t.env.Getenv); !unicode && name != "" && name != "c" && name != "posix" {
		words += notUTF8 // those have but ASCII's letters
	}
	_, _ = io.WriteString(t.w, words+leaving) // a terminal that is gone needs no more
	if t.in != nil {
		_ = term.Restore(int(t.in.Fd()), t.before)
	}
}

// answers says whether the terminal can be asked about modes: some that don't
// know the question print it.
func answers(env uv.Environ) bool {
	program, named := env.LookupEnv("TERM_PROGRAM")
	_, remote := env.LookupEnv("SSH_TTY")
	if !remote && (!named || !strings.Contains(program, "Apple")) {
		return true
	}
	return slices.ContainsFunc([]string{"ghostty", "wezterm", "alacritty", "kitty", "rio"}, func(known string) bool {
		return strings.Contains(env.Getenv("TERM"), known)
	})
}

// resizes tells the terminal's size now and whenever it changes.
func (t *tty) resizes(send func(tea.Msg)) {
	for ok := true; ok; _, ok = <-t.resized {
		size := tea.WindowSizeMsg{Width: 80, Height: 24}
		if t.out != nil {
			rows, cols, err := pty.Getsize(t.out)
			if err != nil {
				continue
			}
			size = tea.WindowSizeMsg{Width: cols, Height: rows}
		}
		send(size)
	}
}

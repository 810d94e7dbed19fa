package syntax

import (
	"strings"
	"sync"
)

// endings maps file name endings to languages. It is a plain literal: maps of
// keywords are made when a language is first needed.
var endings = map[string]string{
	"go": "go", "c": "c", "h": "c", "cc": "c", "cpp": "c", "hpp": "c", "cxx": "c",
	"java": "java", "kt": "java", "kts": "java", "scala": "java", "swift": "java", "cs": "java", "dart": "java",
	"js": "js", "jsx": "js", "ts": "js", "tsx": "js", "mjs": "js", "cjs": "js", "vue": "js", "svelte": "js",
	"rs": "rust", "zig": "rust", "php": "php",
	"py": "python", "pyi": "python", "rb": "ruby", "pl": "ruby", "ex": "ruby", "exs": "ruby", "lua": "lua",
	"sh": "shell", "bash": "shell", "zsh": "shell", "fish": "shell", "mk": "make",
	"json": "json", "jsonc": "json", "yaml": "yaml", "yml": "yaml", "toml": "toml", "ini": "toml", "cfg": "toml", "conf": "toml",
	"sql": "sql", "css": "css", "scss": "css", "less": "css", "proto": "proto", "tf": "toml", "hcl": "toml", "mod": "gomod",
}

const (
	wordsC    = "auto break case char class const constexpr continue default delete do double else enum extern false float for goto if inline int long namespace new nullptr operator private protected public return short signed sizeof static struct switch template this throw true try typedef typename union unsigned using virtual void volatile while NULL"
	wordsGo   = "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false iota any bool byte error float32 float64 int int8 int16 int32 int64 rune string uint uint8 uint16 uint32 uint64 uintptr append cap close copy delete len make max min new panic recover"
	wordsJava = "abstract as assert async await boolean break byte case catch char class companion const continue data default do double else enum extends extension false final finally float for fun func guard if implements import in init instanceof int interface internal is let long namespace native new nil null object override package private protected public readonly record return sealed self short static string struct super switch synchronized this throw throws trait true try typealias using val var void volatile when where while yield"
	wordsJS   = "abstract any as async await boolean break case catch class const continue debugger declare default delete do else enum export extends false finally for from function get if implements import in instanceof interface keyof let namespace never new null number of private protected public readonly return set static string super switch this throw true try type typeof undefined unknown var void while with yield"
	wordsRust = "as async await bool break char const continue crate dyn else enum extern f32 f64 false fn for i16 i32 i64 i8 if impl in isize let loop match mod move mut pub ref return self Self static str struct super trait true type u16 u32 u64 u8 unsafe use usize where while None Some Ok Err comptime defer try var"
	wordsPHP  = "abstract and array as break case catch class const continue declare default do echo else elseif extends false final finally fn for foreach function global if implements include instanceof interface isset match namespace new null or print private protected public readonly require return static switch throw trait true try unset use var while yield"
	wordsPy   = "and as assert async await break case class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return self True try while with yield"
	wordsRuby = "alias and begin break case class def defmodule defp defined do else elsif end ensure false fn for if in module next nil not or package redo require rescue retry return self super sub then true undef unless until use when while with yield my our"
	wordsLua  = "and break do else elseif end false for function goto if in local nil not or repeat return then true until while"
	wordsSh   = "if then else elif fi case esac for select while until do done in function time return exit export local readonly declare set unset shift trap source eval exec cd echo test begin end"
	wordsMake = "ifeq ifneq ifdef ifndef else endif include define endef export override"
	wordsSQL  = "add all alter and as asc begin between by case check column commit constraint create cross default delete desc distinct drop else end exists foreign from full group having if in index inner insert into is join key left like limit not null offset on or order outer primary references rollback select set table then transaction union unique update using values view when where with"
	wordsDock = "FROM RUN CMD LABEL EXPOSE ENV ADD COPY ENTRYPOINT VOLUME USER WORKDIR ARG ONBUILD STOPSIGNAL HEALTHCHECK SHELL AS"
	wordsPB   = "bool bytes double enum false fixed32 fixed64 float import int32 int64 map message oneof option optional package repeated required reserved returns rpc service sint32 sint64 stream string syntax true uint32 uint64"
	wordsMod  = "module go require replace exclude retract toolchain use"
)

var (
	mu     sync.Mutex
	loaded = map[string]*language{} // guarded by mu
)

// byName makes a language on first use.
func byName(name string) *language {
	mu.Lock()
	defer mu.Unlock()
	if l, ok := loaded[name]; ok {
		return l
	}
	l := build(name)
	loaded[name] = l
	return l
}

func build(name string) *language {
	slashes := func(words, quotes string, long ...string) *language {
		return &language{line: []string{"//"}, block: [2]string{"/*", "*/"}, quotes: quotes, long: long, words: set(words), calls: true}
	}
	hash := func(words string) *language {
		return &language{line: []string{"#"}, quotes: `"'`, words: set(words), calls: true}
	}
	switch name {
	case "go":
		return slashes(wordsGo, `"'`, "`")
	case "c":
		return slashes(wordsC, `"'`)
	case "java":
		return slashes(wordsJava, `"'`, `"""`)
	case "js":
		return slashes(wordsJS, `"'`, "`")
	case "rust":
		return slashes(wordsRust, `"`)
	case "php":
		l := slashes(wordsPHP, `"'`)
		l.dollar = true
		return l
	case "proto":
		return slashes(wordsPB, `"'`)
	case "python":
		l := hash(wordsPy)
		l.long = []string{`"""`, `'''`}
		return l
	case "ruby":
		return hash(wordsRuby)
	case "lua":
		l := hash(wordsLua)
		l.line = []string{"--"}
		return l
	case "shell":
		l := hash(wordsSh)
		l.dollar, l.calls, l.hyphens = true, false, true
		return l
	case "make":
		l := hash(wordsMake)
		l.dollar, l.calls, l.keys, l.hyphens = true, false, true, true
		return l
	case "docker":
		l := hash(wordsDock)
		l.dollar, l.calls = true, false
		return l
	case "json":
		return &language{line: []string{"//"}, quotes: `"`, words: set("true false null")}
	case "yaml":
		return &language{line: []string{"#"}, quotes: `"'`, words: set("true false null yes no on off"), keys: true, hyphens: true}
	case "toml":
		return &language{line: []string{"#", ";"}, quotes: `"'`, words: set("true false"), keys: true, hyphens: true}
	case "sql":
		return &language{line: []string{"--"}, block: [2]string{"/*", "*/"}, quotes: `"'`, words: set(wordsSQL + " " + strings.ToUpper(wordsSQL)), calls: true}
	case "css":
		return &language{block: [2]string{"/*", "*/"}, quotes: `"'`, keys: true, hyphens: true}
	case "gomod":
		return &language{line: []string{"//"}, quotes: "\"`", words: set(wordsMod)}
	}
	return nil
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

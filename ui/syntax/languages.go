package syntax

import (
	"strings"
	"sync"
)

// endings maps file name endings to languages.
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

// languages are made when one is first needed: most processes colour nothing.
var languages = sync.OnceValue(func() map[string]*language {
	slashes, hash, dashes, block := []string{"//"}, []string{"#"}, []string{"--"}, [2]string{"/*", "*/"}
	return map[string]*language{
		"go":     {line: slashes, block: block, quotes: `"'`, long: []string{"`"}, calls: true, words: set("break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false iota any bool byte error float32 float64 int int8 int16 int32 int64 rune string uint uint8 uint16 uint32 uint64 uintptr append cap close copy delete len make max min new panic recover")},
		"c":      {line: slashes, block: block, quotes: `"'`, calls: true, words: set("auto break case char class const constexpr continue default delete do double else enum extern false float for goto if inline int long namespace new nullptr operator private protected public return short signed sizeof static struct switch template this throw true try typedef typename union unsigned using virtual void volatile while NULL")},
		"java":   {line: slashes, block: block, quotes: `"'`, long: []string{`"""`}, calls: true, words: set("abstract as assert async await boolean break byte case catch char class companion const continue data default do double else enum extends extension false final finally float for fun func guard if implements import in init instanceof int interface internal is let long namespace native new nil null object override package private protected public readonly record return sealed self short static string struct super switch synchronized this throw throws trait true try typealias using val var void volatile when where while yield")},
		"js":     {line: slashes, block: block, quotes: `"'`, long: []string{"`"}, calls: true, words: set("abstract any as async await boolean break case catch class const continue debugger declare default delete do else enum export extends false finally for from function get if implements import in instanceof interface keyof let namespace never new null number of private protected public readonly return set static string super switch this throw true try type typeof undefined unknown var void while with yield")},
		"rust":   {line: slashes, block: block, quotes: `"`, calls: true, words: set("as async await bool break char const continue crate dyn else enum extern f32 f64 false fn for i16 i32 i64 i8 if impl in isize let loop match mod move mut pub ref return self Self static str struct super trait true type u16 u32 u64 u8 unsafe use usize where while None Some Ok Err comptime defer try var")},
		"php":    {line: slashes, block: block, quotes: `"'`, calls: true, dollar: true, words: set("abstract and array as break case catch class const continue declare default do echo else elseif extends false final finally fn for foreach function global if implements include instanceof interface isset match namespace new null or print private protected public readonly require return static switch throw trait true try unset use var while yield")},
		"proto":  {line: slashes, block: block, quotes: `"'`, calls: true, words: set("bool bytes double enum false fixed32 fixed64 float import int32 int64 map message oneof option optional package repeated required reserved returns rpc service sint32 sint64 stream string syntax true uint32 uint64")},
		"python": {line: hash, quotes: `"'`, long: []string{`"""`, `'''`}, calls: true, words: set("and as assert async await break case class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return self True try while with yield")},
		"ruby":   {line: hash, quotes: `"'`, calls: true, words: set("alias and begin break case class def defmodule defp defined do else elsif end ensure false fn for if in module next nil not or package redo require rescue retry return self super sub then true undef unless until use when while with yield my our")},
		"lua":    {line: dashes, quotes: `"'`, calls: true, words: set("and break do else elseif end false for function goto if in local nil not or repeat return then true until while")},
		"shell":  {line: hash, quotes: `"'`, dollar: true, hyphens: true, words: set("if then else elif fi case esac for select while until do done in function time return exit export local readonly declare set unset shift trap source eval exec cd echo test begin end")},
		"make":   {line: hash, quotes: `"'`, dollar: true, keys: true, hyphens: true, words: set("ifeq ifneq ifdef ifndef else endif include define endef export override")},
		"docker": {line: hash, quotes: `"'`, dollar: true, words: set("FROM RUN CMD LABEL EXPOSE ENV ADD COPY ENTRYPOINT VOLUME USER WORKDIR ARG ONBUILD STOPSIGNAL HEALTHCHECK SHELL AS")},
		"json":   {line: slashes, quotes: `"`, words: set("true false null")},
		"yaml":   {line: hash, quotes: `"'`, keys: true, hyphens: true, words: set("true false null yes no on off")},
		"toml":   {line: []string{"#", ";"}, quotes: `"'`, keys: true, hyphens: true, words: set("true false")},
		"sql":    {line: dashes, block: block, quotes: `"'`, calls: true, words: set("add all alter and as asc begin between by case check column commit constraint create cross default delete desc distinct drop else end exists foreign from full group having if in index inner insert into is join key left like limit not null offset on or order outer primary references rollback select set table then transaction union unique update using values view when where with ADD ALL ALTER AND AS ASC BEGIN BETWEEN BY CASE CHECK COLUMN COMMIT CONSTRAINT CREATE CROSS DEFAULT DELETE DESC DISTINCT DROP ELSE END EXISTS FOREIGN FROM FULL GROUP HAVING IF IN INDEX INNER INSERT INTO IS JOIN KEY LEFT LIKE LIMIT NOT NULL OFFSET ON OR ORDER OUTER PRIMARY REFERENCES ROLLBACK SELECT SET TABLE THEN TRANSACTION UNION UNIQUE UPDATE USING VALUES VIEW WHEN WHERE WITH")},
		"css":    {block: block, quotes: `"'`, keys: true, hyphens: true},
		"gomod":  {line: slashes, quotes: "\"`", words: set("module go require replace exclude retract toolchain use")},
	}
})

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

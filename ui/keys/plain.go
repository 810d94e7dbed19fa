package keys

// plain are the commands of a shell that do what is called so.
var plain = map[string]string{
	"approve": "approve", "allow always": "approve --always", "step into": "approve --into", "step over": "approve --over", "approve and keep": "approve --keep", "deny": "deny", "keep": "keep",
	"roll back this": "rollback --action", "roll back to before": "rollback --to-before", "redo": "rollback --redo", "roll back home": "rollback --home",
	"apply": "apply", "apply without": "apply --without", "undo apply": "apply --undo", "export": "export", "resume": "resume", "fork": "fork",
	"pause": "pause", "continue, mode policy": "mode policy", "kill action": "kill --action", "kill sandbox": "kill",
	"mode step": "mode step", "mode watch": "mode watch",
	"replay": "replay", "now": "attach", "search": "grep", "find what broke this": "bisect", "view file": "cat", "blame": "blame",
	"changes": "diff", "network": "net", "actions": "show", "facts": "show", "home": "ls", "detach": "attach", "rules": "policy show", "forget rule": "allow --forget",
	"help": "help", "new": "run", "open": "attach", "rename": "label --name", "tag": "label --tag", "note": "label --note", "pin": "label --pin", "trash": "rm",
}

// Plain is the command of a shell, after stepbox, that does what a binding does; "" where
// there is none.
func (b Binding) Plain() string { return plain[b.Name] }

// also are other words by which people look for what is called so. They are shown nowhere.
var also = map[string][]string{
	"kill sandbox": {"end", "stop", "quit session"}, "changes": {"diff"}, "roll back this": {"undo"},
}

// Also are other words for what a binding does.
func (b Binding) Also() []string { return also[b.Name] }

package cli

import "github.com/spf13/cobra"

// helpText is how the help of every command reads. It is plain, so that a pipe,
// a screen reader and a terminal get the same, and the usage line stands as it
// was written: what it says is what the command takes.
const helpText = `{{with or .Long .Short}}{{.}}
{{end}}
Usage:
  {{.UseLine}}{{if and .Runnable .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND [flags]{{end}}
{{- if .HasExample}}

Examples:
{{.Example}}
{{- end}}
{{- if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}
{{- end}}
{{- if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}
{{- end}}
{{- if .HasAvailableSubCommands}}

{{.CommandPath}} COMMAND --help says more of a command.
{{- end}}
`

// Plain sets how a root command and all below it speak: errors are the
// caller's to print, help is plain text.
func Plain(root *cobra.Command) {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetHelpTemplate(helpText)
	root.SetUsageTemplate(helpText)
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
}

package api

// Effects say in words and numbers what an action did to the files.
type Effects struct {
	// Words are what a person should know, weightiest first: "deletes 4 files, 1
	// of them never committed", "makes 2 files executable".
	Words []string `json:"words"`
	Grave bool     `json:"grave,omitempty"` // something is lost that nothing but the session's record has, or runs by itself later

	Created     int `json:"created,omitempty"`
	Modified    int `json:"modified,omitempty"`
	Deleted     int `json:"deleted,omitempty"`
	Renamed     int `json:"renamed,omitempty"`
	Uncommitted int `json:"uncommitted,omitempty"` // deleted or overwritten files whose content is in no commit
	Executable  int `json:"executable,omitempty"`  // made so
	Ignored     int `json:"ignored,omitempty"`     // of all these: files that git ignores

	Committed string `json:"committed,omitempty"` // the first line of its last commit's message
}

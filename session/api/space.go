package api

// Space is what a session takes on the disk, in bytes.
type Space struct {
	Files     int64 `json:"files"`     // what it wrote in the project, kept until it is removed
	Temporary int64 `json:"temporary"` // its /tmp
	Record    int64 `json:"record"`    // its terminal's output and the like, without contents of files, which sessions share
}

// Collected is what a collection removed from the record, or would remove.
type Collected struct {
	Bodies  int   `json:"bodies"`  // contents that no session names
	Bytes   int64 `json:"bytes"`   // of those
	Folders int   `json:"folders"` // of sessions that the record doesn't have
	Dry     bool  `json:"dry,omitempty"`
}

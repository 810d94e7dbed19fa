package holder

import (
	"encoding/json"
	"strings"

	"golang.org/x/sys/unix"
)

// layers tries to mount each folder as the only filled layer of a read-only
// overlay, in this holder's own mount namespace, and says why the kernel
// refuses some.
func layers(body json.RawMessage) (layersAnswer, error) {
	var request layersRequest
	if err := json.Unmarshal(body, &request); err != nil {
		return layersAnswer{}, err
	}
	out := layersAnswer{Refused: make([]string, len(request.Folders))}
	for i, folder := range request.Folders {
		options := "lowerdir=" + escapeLayer(request.Empty) + ":" + escapeLayer(folder) + ",userxattr"
		if err := unix.Mount("overlay", request.Empty, "overlay", unix.MS_RDONLY, options); err != nil {
			out.Refused[i] = err.Error()
		} else if err := unix.Unmount(request.Empty, unix.MNT_DETACH); err != nil {
			return layersAnswer{}, err
		}
	}
	return out, nil
}

// escapeLayer writes a path as an overlay's option: see overlayfs.rst.
var escapeLayer = strings.NewReplacer(`\`, `\\`, `:`, `\:`, `,`, `\,`).Replace

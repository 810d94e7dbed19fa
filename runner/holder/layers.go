package holder

import (
	"encoding/json"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// layers makes of each folder the only filled layer of a read-only overlay, and
// says why the kernel refuses some. The overlays aren't mounted anywhere. They
// go with the holder: ending one takes longer than making it.
func layers(body json.RawMessage) (layersAnswer, error) {
	var request layersRequest
	if err := json.Unmarshal(body, &request); err != nil {
		return layersAnswer{}, err
	}
	empty, err := openPath(request.Empty)
	if err != nil {
		return layersAnswer{}, err
	}
	defer unix.Close(empty)
	out := layersAnswer{Refused: make([]string, len(request.Folders))}
	for i, folder := range request.Folders {
		if err := layer(empty, folder); err != nil {
			out.Refused[i] = err.Error()
		}
	}
	return out, nil
}

func layer(empty int, folder string) error {
	dir, err := openPath(folder)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	fs, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return err
	}
	// By descriptor, since a value may have no more than 255 bytes.
	lower := "/proc/self/fd/" + strconv.Itoa(empty) + ":/proc/self/fd/" + strconv.Itoa(dir)
	err = unix.FsconfigSetString(fs, "lowerdir", lower)
	if err == nil {
		err = unix.FsconfigSetFlag(fs, "userxattr")
	}
	if err == nil {
		err = unix.FsconfigCreate(fs)
	}
	if err != nil {
		unix.Close(fs)
	}
	return err
}

func openPath(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("cannot open %q: %w", path, err)
	}
	return fd, nil
}

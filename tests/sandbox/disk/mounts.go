// Package disk makes file systems on loop files, grows them, and finds and
// releases every mount and loop device below a folder.
package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	mountPointField = 4
	// rounds of unmounting: one is enough unless something is mounted meanwhile.
	rounds = 5
)

var errStays = errors.New("it stays mounted")

// parseMounts lists the mount points below the folder from the text of
// /proc/self/mountinfo, in the order they were mounted. The folder itself is not one
// of them: somebody may have given it a disk of its own.
func parseMounts(text, folder string) []string {
	var points []string

	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) <= mountPointField {
			continue
		}

		if point := unescape(fields[mountPointField]); strings.HasPrefix(point, folder+"/") {
			points = append(points, point)
		}
	}

	return points
}

// unescape undoes the kernel's octal escapes of space, tab, newline, backslash.
func unescape(text string) string {
	const width = 4

	var out strings.Builder

	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+width <= len(text) {
			if code, err := strconv.ParseUint(text[i+1:i+width], 8, 8); err == nil {
				out.WriteByte(byte(code))

				i += width - 1

				continue
			}
		}

		out.WriteByte(text[i])
	}

	return out.String()
}

// Mounts lists the mount points below the folder.
func Mounts(folder string) ([]string, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("read the mounts: %w", err)
	}

	return parseMounts(string(data), folder), nil
}

// Mounted tells whether something is mounted at the path.
func Mounted(path string) (bool, error) {
	points, err := Mounts(filepath.Dir(path))

	return slices.Contains(points, path), err
}

// UnmountBelow unmounts everything below the folder, the latest first. The
// processes that use it must be gone. It looks again afterwards, because a mount may
// hide another and what is half unmounted must not pass for nothing.
func UnmountBelow(folder string) error {
	var points []string

	for range rounds {
		var err error
		if points, err = Mounts(folder); err != nil || len(points) == 0 {
			return err
		}

		if err := unmount(points); err != nil {
			return err
		}
	}

	return fmt.Errorf("unmount %s: %w", strings.Join(points, ", "), errStays)
}

func unmount(points []string) error {
	for _, point := range slices.Backward(points) {
		// Detached rather than refused when somebody looks at it from outside; what
		// went with the mount above it is not there any more.
		if err := unix.Unmount(point, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("unmount %s: %w", point, err)
		}
	}

	return nil
}

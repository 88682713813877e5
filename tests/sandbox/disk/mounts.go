// Package disk makes file systems on loop files, grows them, and finds and
// releases every mount and loop device below a folder.
package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/deckhouse/system-s3/tests/sandbox/command"
)

const mountPointField = 4

// parseMounts lists the mount points below the folder (the folder itself too)
// from the text of /proc/self/mountinfo, in the order they were mounted.
func parseMounts(text, folder string) []string {
	var points []string

	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) <= mountPointField {
			continue
		}

		point := unescape(fields[mountPointField])
		if point == folder || strings.HasPrefix(point, folder+"/") {
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
	points, err := Mounts(path)

	return slices.Contains(points, path), err
}

// UnmountBelow unmounts everything below the folder, the latest first. The
// processes that use it must be gone.
func UnmountBelow(folder string) error {
	points, err := Mounts(folder)
	if err != nil {
		return err
	}

	slices.Reverse(points)

	for _, point := range points {
		// Detached rather than refused when somebody looks at it from outside; what
		// went with the mount above it is not there any more.
		if err := unix.Unmount(point, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("unmount %s: %w", point, err)
		}
	}

	return nil
}

// Loops lists the loop devices whose files are below the folder (or are the file
// at that path).
func Loops(folder string) ([]string, error) {
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, fmt.Errorf("list the loop devices: %w", err)
	}

	var devices []string

	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // released meanwhile
		}

		backing := strings.TrimSuffix(strings.TrimSpace(string(data)), " (deleted)")
		if backing == folder || strings.HasPrefix(backing, folder+"/") {
			devices = append(devices, "/dev/"+filepath.Base(filepath.Dir(filepath.Dir(file))))
		}
	}

	return devices, nil
}

// ReleaseBelow unmounts everything below the folder and frees the loop devices of
// the files in it.
func ReleaseBelow(ctx context.Context, folder string) error {
	if err := UnmountBelow(folder); err != nil {
		return err
	}

	devices, err := Loops(folder)
	if err != nil {
		return err
	}

	for _, device := range devices {
		// A device frees itself after its last user: it may be gone by now.
		if err := command.Run(ctx, "losetup", "-d", device); err != nil && !released(device) {
			return fmt.Errorf("free a loop device: %w", err)
		}
	}

	return nil
}

func released(device string) bool {
	_, err := os.Stat("/sys/block/" + filepath.Base(device) + "/loop/backing_file")

	return err != nil
}

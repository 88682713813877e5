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
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/deckhouse/system-s3/tests/sandbox/command"
)

const (
	// freeLimit is how long the kernel may take to let go of a file system whose last
	// user has ended: it writes down what is left first.
	freeLimit    = time.Minute
	freeInterval = 50 * time.Millisecond
)

var errHeld = errors.New("somebody outside of the sandbox uses the file system, perhaps in a mount namespace of its own")

// Loops lists the loop devices whose files are below the folder (or are the file
// at that path).
func Loops(folder string) ([]string, error) {
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, fmt.Errorf("list the loop devices: %w", err)
	}

	var devices []string

	for _, file := range files {
		data, err := os.ReadFile(file) //nolint:gosec // a file of the kernel's
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
		if err := command.Quick(ctx, "losetup", "-d", device); err != nil && !released(device) {
			return fmt.Errorf("free a loop device: %w", err)
		}
	}

	return nil
}

func released(device string) bool {
	_, err := os.Stat("/sys/block/" + filepath.Base(device) + "/loop/backing_file")

	return err != nil
}

// AwaitFree waits until no loop device holds a file below the folder. A released
// device stays until the last user of its file system is gone; when that does not
// happen the error names the processes that see the file system.
func AwaitFree(ctx context.Context, folder string) error {
	var devices []string

	free := func(context.Context) (bool, error) {
		var err error
		devices, err = Loops(folder)

		return len(devices) == 0, err
	}

	if err := wait.PollUntilContextTimeout(ctx, freeInterval, freeLimit, true, free); err != nil {
		return fmt.Errorf("wait for %s (processes %v): %w: %w", strings.Join(devices, ", "), holders(devices), errHeld, err)
	}

	return nil
}

// holders lists the processes in whose mount namespaces the devices are mounted.
func holders(devices []string) []int {
	var pids []int

	paths, _ := filepath.Glob("/proc/[0-9]*/mountinfo")
	for _, path := range paths {
		text, err := os.ReadFile(path) //nolint:gosec // a file of the kernel's
		if err != nil {
			continue // ended meanwhile
		}

		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && mentions(string(text), devices) {
			pids = append(pids, pid)
		}
	}

	return pids
}

// mentions tells whether any word of the text is one of the devices.
func mentions(text string, devices []string) bool {
	for word := range strings.FieldsSeq(text) {
		if slices.Contains(devices, word) {
			return true
		}
	}

	return false
}

// Package fence remembers, on the replica's volume, that its store takes no writes any more and where requests go
// instead. There is no way back: what was written elsewhere since would be lost.
package fence

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
)

const file = "fence"

var errAddress = errors.New("what requests are to be forwarded to is no https URL")

// ErrBack means that somebody wants to take a fence back.
var ErrBack = errors.New("where requests are forwarded to may change, but not be taken back")

// State is the fence's.
type State struct {
	Fenced bool   `json:"fenced"`
	To     string `json:"to"` // URL of the gateway that requests go to; empty when nowhere yet
}

// Fence is safe for concurrent use.
type Fence struct {
	dir string

	mu    sync.Mutex
	state State
}

// Open reads what the volume tells. What cannot be read is an error: a fence must not fall by accident.
func Open(dir string) (*Fence, error) {
	f := &Fence{dir: dir}
	data, err := os.ReadFile(filepath.Join(dir, file)) //nolint:gosec // the volume's directory is configuration
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &f.state)
	}
	if err != nil {
		return nil, fmt.Errorf("read the fence: %w", err)
	}
	f.state.Fenced = true
	return f, nil
}

// State is what holds now.
func (f *Fence) State() State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

// Set fences and tells where requests go; empty is nowhere yet. It is on the disk when Set returns.
func (f *Fence) Set(to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state.To != "" && to == "" {
		return ErrBack
	}
	if target, err := url.Parse(to); err != nil || to != "" && (target.Scheme != "https" || target.Host == "") {
		return errAddress
	}
	wanted := State{Fenced: true, To: to}
	if f.state == wanted {
		return nil
	}
	if err := f.write(wanted); err != nil {
		return fmt.Errorf("write the fence: %w", err)
	}
	f.state = wanted
	return nil
}

func (f *Fence) write(state State) error {
	data, err := json.Marshal(state)
	if err != nil {
		return err //nolint:wrapcheck // Set tells what was done
	}
	path := filepath.Join(f.dir, file)
	const mode = 0o600
	temp, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode) //nolint:gosec // as in Open
	if err != nil {
		return err //nolint:wrapcheck // Set tells what was done
	}
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return err //nolint:wrapcheck // Set tells what was done
	}
	dir, err := os.Open(f.dir)
	if err != nil {
		return err //nolint:wrapcheck // Set tells what was done
	}
	return errors.Join(dir.Sync(), dir.Close())
}

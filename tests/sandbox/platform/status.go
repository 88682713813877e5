package platform

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	mainQueue = "/queue/main.text"
	// logTail is how many of the last errors Status tells.
	logTail = 20
)

// idle tells whether the text of a queue shows no task.
func idle(queue string) bool {
	return strings.Contains(queue, "is empty") || strings.Contains(queue, "length 0")
}

// Status tells how the platform is doing: processes, addon-operator's main queue, the
// module's values and the last errors. It tells what it can and never fails: it is
// read when something else failed. Secrets among the values are hidden.
func Status(ctx context.Context, env Env, out io.Writer) {
	for _, name := range []string{PlatformProcess, OperatorProcess} {
		record, found, err := env.processes().Find(name)
		fmt.Fprintf(out, "process %s: %s\n", name, processState(found && err == nil && record.Alive(), record.PID)) //nolint:errcheck // Told as far as possible.
	}

	for _, page := range []string{mainQueue, "/module/list.text"} {
		section(out, "addon-operator "+page, answer(env.socket().get(ctx, page)))
	}

	def, err := ReadDefinition(env.Checkout)
	if err != nil {
		section(out, "module", err.Error())
		return
	}

	section(out, "values of "+def.Name, answer(env.moduleValues(ctx, def.Name)))
	section(out, "last errors", strings.Join(Errors(env, logTail), "\n"))
}

// moduleValues are the module's values without what must stay secret.
func (e Env) moduleValues(ctx context.Context, module string) (string, error) {
	text, err := e.socket().get(ctx, "/module/"+module+"/values.json")
	if err != nil {
		return "", err
	}

	var values any
	if err := json.Unmarshal([]byte(text), &values); err != nil {
		return "", fmt.Errorf("read values: %w", err)
	}

	hidden, err := json.MarshalIndent(hide(values), "", "  ")

	return string(hidden), wrap("write values", err)
}

// hide replaces the values of keys that hold secrets.
func hide(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, below := range value {
			value[key] = hide(below)

			if secret(key) {
				value[key] = "(hidden)"
			}
		}
	case []any:
		for i := range value {
			value[i] = hide(value[i])
		}
	}

	return value
}

// secret tells whether values under the key are secret by the module's contract.
func secret(key string) bool {
	switch key {
	case "rpcSecret", "adminToken", "metricsToken", "seed", "nodeKeys", "key", "keyRing", "dockercfg":
		return true
	}

	return false
}

// Errors returns the last errors of addon-operator's log, the newest last, each in a line.
func Errors(env Env, limit int) []string {
	data, err := os.ReadFile(env.Dir.Log(OperatorProcess))
	if err != nil {
		return []string{err.Error()}
	}

	var lines []string

	for line := range strings.Lines(string(data)) {
		if text := errorIn(line); text != "" {
			lines = append(lines, text)
		}
	}

	return lines[max(0, len(lines)-limit):]
}

// errorIn is what a log line tells of an error, without the stack trace; empty when
// it tells of none. What is not JSON but a panic is an error as it stands.
func errorIn(line string) string {
	var entry struct {
		Level  string `json:"level"`
		Time   string `json:"time"`
		Logger string `json:"logger"`
		Msg    string `json:"msg"`
		Error  string `json:"error"`
	}
	if json.Unmarshal([]byte(line), &entry) != nil {
		if strings.HasPrefix(line, "panic:") {
			return strings.TrimSpace(line)
		}

		return ""
	}

	if entry.Level != "error" && entry.Level != "fatal" {
		return ""
	}

	text := strings.Join([]string{entry.Time, entry.Logger, entry.Msg, entry.Error}, " ")

	return strings.Join(strings.Fields(text), " ")
}

// Logs copies the log of one of the platform's processes, without the lines that
// only tell that somebody looked at its debug pages.
func Logs(env Env, name string, out io.Writer) error {
	file, err := os.Open(env.Dir.Log(name))
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	defer file.Close() //nolint:errcheck // Only read.

	for reader := bufio.NewReader(file); ; {
		line, err := reader.ReadString('\n')
		if !strings.Contains(line, `"operator.component":"debugEndpoint"`) {
			fmt.Fprint(out, line) //nolint:errcheck // Told as far as possible.
		}

		if errors.Is(err, io.EOF) {
			return nil
		}

		if err != nil {
			return fmt.Errorf("read log: %w", err)
		}
	}
}

func processState(alive bool, pid int) string {
	if alive {
		return fmt.Sprintf("running (%d)", pid)
	}

	return "not running"
}

func section(out io.Writer, title, text string) {
	fmt.Fprintf(out, "\n== %s\n%s\n", title, strings.TrimSpace(text)) //nolint:errcheck // Told as far as possible.
}

func answer(text string, err error) string {
	if err != nil {
		return err.Error()
	}

	return text
}

package main

import (
	stdlog "log"
	"strings"

	"github.com/go-logr/logr"
)

// debugLog is a standard logger whose lines are told only when more is wanted.
func debugLog(log logr.Logger) *stdlog.Logger { return stdlog.New(debugWriter{log}, "", 0) }

type debugWriter struct{ log logr.Logger }

func (w debugWriter) Write(line []byte) (int, error) {
	w.log.V(1).Info(strings.TrimSpace(string(line)))
	return len(line), nil
}

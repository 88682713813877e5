package metrics

import "strings"

// class is a group of operations: the label operation.
type class uint8

const (
	other class = iota // not known: refused before anybody could tell
	read
	list
	write
	remove
	exchange
	classes
)

func (c class) String() string {
	return [classes]string{"other", "read", "list", "write", "delete", "sts"}[c]
}

// classOf sorts an operation by the first word of its S3 name.
func classOf(operation string) class {
	switch {
	case operation == "":
		return other
	case strings.HasPrefix(operation, "Get"), strings.HasPrefix(operation, "Head"):
		return read
	case strings.HasPrefix(operation, "List"):
		return list
	case strings.HasPrefix(operation, "Delete"), strings.HasPrefix(operation, "Abort"):
		return remove
	case strings.HasPrefix(operation, "Assume"):
		return exchange
	default: // Put, Upload, Copy, Create, Complete
		return write
	}
}

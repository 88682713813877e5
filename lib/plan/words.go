package plan

import (
	"strconv"
	"strings"
)

// replicas counts in words where people read them.
func replicas(n int) string {
	switch n {
	case single:
		return "One replica"
	case faultTolerant:
		return "Three replicas"
	default:
		return strconv.Itoa(n) + " replicas"
	}
}

// capital starts a sentence. Messages begin with ASCII letters.
func capital(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// lowerFirst continues a sentence with another one.
func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// Package version is the version that a program was built as. The build stamps it:
//
//	go build -ldflags "-X github.com/deckhouse/system-s3/lib/version.stamp=v1.2.3"
package version

import "fmt"

// stamp is set by the linker, which can set nothing but a variable.
var stamp string

// String is the version, "dev" when the build told none.
func String() string {
	if stamp == "" {
		return "dev"
	}
	return stamp
}

// Line is what a program answers to --version.
func Line(program string) string { return fmt.Sprintf("%s of system-s3 %s", program, String()) }

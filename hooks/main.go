// The hooks of the module: one program that Deckhouse calls with the number of a hook. A hook observes the cluster by
// snapshots, lets lib/plan decide and publishes the decision as values, which the chart prints. Each hook has a file
// of its own, because its name is the file's.
package main

import (
	"fmt"
	"os"

	"github.com/deckhouse/module-sdk/pkg/app"

	"github.com/deckhouse/system-s3/lib/version"
)

func main() {
	if asksVersion(os.Args[1:]) {
		_, _ = fmt.Fprintln(os.Stdout, version.Line("hooks")) // whoever closed it does not want to know
		return
	}
	app.Run()
}

// asksVersion tells the one question that is not Deckhouse's.
func asksVersion(args []string) bool { return len(args) == 1 && args[0] == "--version" }

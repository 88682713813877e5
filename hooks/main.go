// The hooks of the module: one program that Deckhouse calls with the number of a hook. A hook observes the cluster by
// snapshots, lets lib/plan decide and publishes the decision as values, which the chart prints. Each hook has a file
// of its own, because its name is the file's.
package main

import "github.com/deckhouse/module-sdk/pkg/app"

func main() {
	app.Run()
}

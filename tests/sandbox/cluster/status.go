package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhouse/system-s3/tests/sandbox/address"
	"github.com/deckhouse/system-s3/tests/sandbox/controlplane"
	"github.com/deckhouse/system-s3/tests/sandbox/disk"
)

const (
	kibi   = 1024
	prefix = "VmRSS:"
)

var errDown = errors.New("there is no sandbox: run `sandbox up`")

// Status writes what runs, for people.
func (c Cluster) Status(ctx context.Context, out io.Writer) error {
	if !c.Dir.Exists() {
		return errDown
	}

	records, err := c.Processes.All()
	if err != nil {
		return fmt.Errorf("list the processes: %w", err)
	}

	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "state\t%s\nAPI server\t%s\nregistry\t%s\nkubeconfig\t%s\n\n", //nolint:errcheck // shown at Flush
		c.Dir, address.APIServer(), address.Registry(), c.Dir.Kubeconfig())
	fmt.Fprintln(table, "PROCESS\tPID\tSTATE\tMEMORY") //nolint:errcheck // shown at Flush

	for _, r := range records {
		state := "ended"
		if r.Alive() {
			state = "running"
		}

		fmt.Fprintf(table, "%s\t%d\t%s\t%d MiB\n", r.Name, r.PID, state, resident(r.PID)/kibi) //nolint:errcheck // shown at Flush
	}

	c.nodeStatus(ctx, table)

	loops, err := disk.Loops(string(c.Dir))
	if err != nil {
		return fmt.Errorf("list the volumes: %w", err)
	}

	fmt.Fprintf(table, "\nvolumes\t%d\n", len(loops)) //nolint:errcheck // shown at Flush

	return table.Flush()
}

func (c Cluster) nodeStatus(ctx context.Context, table io.Writer) {
	client, err := controlplane.Client(c.Dir)
	if err != nil {
		fmt.Fprintf(table, "\nno nodes: %v\n", err) //nolint:errcheck // shown at Flush

		return
	}

	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Fprintf(table, "\nno nodes: %v\n", err) //nolint:errcheck // shown at Flush

		return
	}

	fmt.Fprintln(table, "\nNODE\tROLE\tREADY") //nolint:errcheck // shown at Flush

	for i := range nodes.Items {
		role := "worker"
		if _, master := nodes.Items[i].Labels[masterRole]; master {
			role = "master"
		}

		fmt.Fprintf(table, "%s\t%s\t%t\n", nodes.Items[i].Name, role, isReady(&nodes.Items[i])) //nolint:errcheck // shown at Flush
	}
}

// resident is the memory of a process in KiB; 0 when it has ended.
func resident(pid int) int {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}

	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			size, _ := strconv.Atoi(strings.Fields(rest)[0])

			return size
		}
	}

	return 0
}

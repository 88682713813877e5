package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/deckhouse/system-s3/tests/sandbox/statedir"
)

const (
	logLines = 100
	kibi     = 1024
)

// logsCommand lists the logs, or becomes tail on one of them.
func logsCommand() *cobra.Command {
	var (
		lines  int
		follow bool
	)

	cmd := &cobra.Command{
		Use:   "logs [NAME]",
		Short: "print the end of the log of a process, or list the logs",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := statedir.Default()
			if len(args) == 0 {
				return listLogs(cmd, dir)
			}

			tail, err := exec.LookPath("tail")
			if err != nil {
				return fmt.Errorf("show a log: %w", err)
			}

			words := []string{"tail", "-n", strconv.Itoa(lines), dir.Log(filepath.Base(args[0]))}
			if follow {
				words = append(words, "-F")
			}

			return syscall.Exec(tail, words, os.Environ()) //nolint:gosec // a log of the sandbox
		},
	}
	cmd.Flags().IntVarP(&lines, "lines", "n", logLines, "how many lines")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what is written from now on")

	return cmd
}

func listLogs(cmd *cobra.Command, dir statedir.Dir) error {
	logs, err := fs.Glob(os.DirFS(dir.Path("logs")), "*.log")
	if err != nil {
		return fmt.Errorf("list the logs: %w", err)
	}

	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, tablePadding, ' ', 0)
	fmt.Fprintln(table, "NAME\tSIZE\tLAST WRITTEN") //nolint:errcheck // told by Flush

	for _, name := range logs {
		info, err := os.Stat(dir.Path("logs", name))
		if err != nil {
			continue // deleted meanwhile
		}

		age := time.Since(info.ModTime()).Truncate(time.Second)
		fmt.Fprintf(table, "%s\t%d KiB\t%s ago\n", strings.TrimSuffix(name, ".log"), info.Size()/kibi, age) //nolint:errcheck // told by Flush
	}

	return table.Flush()
}

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyTheQuestionForTheVersionIsOurs(t *testing.T) {
	require.True(t, asksVersion([]string{"--version"}))
	for _, deckhouses := range [][]string{nil, {"hook", "list"}, {"hook", "run", "0"}, {"hook", "config", "--version"}} {
		require.False(t, asksVersion(deckhouses), "%v", deckhouses)
	}
}

package version

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheStampIsTold(t *testing.T) {
	require.Equal(t, "hooks of system-s3 dev", Line("hooks"), "a build that tells no version is a developer's")
	stamp = "v1.2.3"
	t.Cleanup(func() { stamp = "" })
	require.Equal(t, "gateway of system-s3 v1.2.3", Line("gateway"))
}

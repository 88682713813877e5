package platform

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/deckhouse/system-s3/tests/sandbox/statedir"
)

func TestOptionsAreRemembered(t *testing.T) {
	t.Parallel()

	fresh := Options{RPCTimeout: defaultRPCTimeout, DeckhouseVersion: defaultDeckhouseVersion, Modules: defaultModules()}
	last := Options{
		KeyLifetime: 30 * time.Second, RPCTimeout: 5 * time.Second, DeckhouseVersion: "dev",
		Modules: []string{"prometheus"}, Protection: true,
	}
	lastBut := func(change func(*Options)) Options {
		changed := last
		change(&changed)

		return changed
	}

	cases := map[string]struct {
		reason string
		last   *Options
		args   []string
		want   Options
	}{
		"first":      {reason: "the defaults", want: fresh},
		"bare":       {reason: "everything stays as it was set", last: &last, want: last},
		"lifetime":   {reason: "what is given wins", last: &last, args: []string{"--key-lifetime=1m"}, want: lastBut(func(o *Options) { o.KeyLifetime = time.Minute })},
		"timeout":    {reason: "the default is a word too", last: &last, args: []string{"--rpc-timeout=10s"}, want: lastBut(func(o *Options) { o.RPCTimeout = defaultRPCTimeout })},
		"version":    {reason: "what is given wins", last: &last, args: []string{"--deckhouse-version=v1.80.0"}, want: lastBut(func(o *Options) { o.DeckhouseVersion = "v1.80.0" })},
		"modules":    {reason: "none is a choice", last: &last, args: []string{"--modules="}, want: lastBut(func(o *Options) { o.Modules = []string{} })},
		"protection": {reason: "and so is no", last: &last, args: []string{"--protection=false"}, want: lastBut(func(o *Options) { o.Protection = false })},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			dir := statedir.Dir(t.TempDir())
			if c.last != nil {
				require.NoError(t, Env{Dir: dir, Options: *c.last}.save())
			}

			var got Options

			flags := pflag.NewFlagSet("up", pflag.ContinueOnError)
			got.AddFlags(flags)
			require.NoError(t, flags.Parse(c.args))
			require.NoError(t, got.Remember(dir, flags))
			assert.Equal(t, c.want, got, c.reason)
		})
	}
}

func TestEveryFlagIsRemembered(t *testing.T) {
	t.Parallel()

	dir := statedir.Dir(t.TempDir())
	last := Options{KeyLifetime: 1, RPCTimeout: 2, DeckhouseVersion: "3", Modules: []string{"4"}, Protection: true}
	require.NoError(t, Env{Dir: dir, Options: last}.save())

	var got Options

	flags := pflag.NewFlagSet("up", pflag.ContinueOnError)
	got.AddFlags(flags)
	require.NoError(t, got.Remember(dir, flags))
	flags.VisitAll(func(flag *pflag.Flag) {
		assert.NotEqual(t, flag.DefValue, flag.Value.String(), "flag %s is forgotten", flag.Name)
	})
}

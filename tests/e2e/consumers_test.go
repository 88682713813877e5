package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/demo/consumer"
)

// push makes the consumers' images once.
func (s *story) push(t *testing.T) images {
	t.Helper()
	if s.images == (images{}) {
		cli, err := consumer.PushCLI(t.Context(), site)
		require.NoError(t, err)
		program, err := consumer.PushProgram(t.Context(), site)
		require.NoError(t, err)
		s.images = images{cli: cli, program: program}
	}
	return s.images
}

// run runs a consumer to its end and returns what it wrote.
func run(t *testing.T, c consumer.Consumer) string {
	t.Helper()
	ctx := t.Context()
	require.NoError(t, c.ServiceAccount(ctx, site.Admin))
	require.NoError(t, site.Start(ctx, c.Pod()))
	ended := site.AwaitEnd(ctx, c.Key(), podLimit)
	log, err := site.Logs(ctx, c.Key(), corev1.PodLogOptions{})
	require.NoError(t, err)
	require.NoError(t, ended, log)
	return log
}

func allow(t *testing.T, account string, rights ...string) consumer.Consumer {
	t.Helper()
	return allowBucket(t, account, mainBucket, rights...)
}

func allowBucket(t *testing.T, account, bucket string, rights ...string) consumer.Consumer {
	t.Helper()
	c := consumer.Consumer{Name: account, Namespace: namespace, Bucket: bucket}
	require.NoError(t, c.ServiceAccount(t.Context(), site.Admin))
	require.NoError(t, c.Allow(t.Context(), site.Admin, rights...))
	return c
}

func (s *story) runsCLI(t *testing.T) {
	c := allow(t, "aws-cli", names.ReadSubresource, names.WriteSubresource)
	c.Image, c.Args = s.push(t).cli, []string{consumer.CopyScript}
	require.Contains(t, run(t, c), "both files are the same")
}

func (s *story) runsProgram(t *testing.T) {
	c := allow(t, "go-program", names.ReadSubresource, names.WriteSubresource)
	c.Image = s.push(t).program
	log := run(t, c)
	bucket, _, err := site.ReadBucket(t.Context(), mainKey())
	require.NoError(t, err)
	require.Contains(t, log, "host "+names.VirtualHost(bucket.Status.BucketName), "virtual-host style without any setting")
	require.Contains(t, log, "it is the same")
}

func (s *story) refusesStranger(t *testing.T) {
	c := consumer.Consumer{Name: "stranger", Namespace: namespace, Bucket: mainBucket, Image: s.push(t).cli, Args: []string{consumer.RefusedScript}}
	log := run(t, c)
	require.Contains(t, log, "AccessDenied")
	require.Contains(t, log, "ServiceAccount "+namespace+"/stranger is not authorized to use SystemBucket "+namespace+"/"+mainBucket)
}

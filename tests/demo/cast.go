package main

import (
	"context"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/demo/consumer"
	"github.com/deckhouse/system-s3/tests/demo/stage"
)

// cast is the consumers.
type cast struct {
	cli, program, stranger consumer.Consumer
}

const (
	cliName      = "aws-cli"
	programName  = "go-program"
	strangerName = "stranger"
)

func (c *cast) prepare(ctx context.Context, s *stage.Stage) error {
	cli, err := consumer.PushCLI(ctx, s)
	if err != nil {
		return err
	}
	program, err := consumer.PushProgram(ctx, s)
	if err != nil {
		return err
	}
	c.cli = consumer.Consumer{Name: cliName, Namespace: namespace, Bucket: bucket, Image: cli, Args: []string{consumer.CopyScript}}
	c.program = consumer.Consumer{Name: programName, Namespace: namespace, Bucket: bucket, Image: program}
	c.stranger = consumer.Consumer{Name: strangerName, Namespace: namespace, Bucket: bucket, Image: cli, Args: []string{consumer.RefusedScript}}
	return nil
}

func (c *cast) rights(ctx context.Context, s *stage.Stage) error {
	for _, one := range []consumer.Consumer{c.cli, c.program, c.stranger} {
		if err := one.ServiceAccount(ctx, s.Admin); err != nil {
			return err
		}
	}
	for _, one := range []consumer.Consumer{c.cli, c.program} {
		if err := one.Allow(ctx, s.Admin, names.ReadSubresource, names.WriteSubresource); err != nil {
			return err
		}
		s.Sayf("    %s may get systembuckets/read and systembuckets/write of %s", one.Name, bucket)
	}
	s.Sayf("    %s may nothing", c.stranger.Name)
	return nil
}

func (c *cast) runCLI(ctx context.Context, s *stage.Stage) error { return perform(ctx, s, c.cli) }
func (c *cast) runProgram(ctx context.Context, s *stage.Stage) error {
	return perform(ctx, s, c.program)
}

func (c *cast) runStranger(ctx context.Context, s *stage.Stage) error {
	return perform(ctx, s, c.stranger)
}

// perform runs a consumer to its end and shows what it writes.
func perform(ctx context.Context, s *stage.Stage, one consumer.Consumer) error {
	if err := s.Start(ctx, one.Pod()); err != nil {
		return err
	}
	if err := s.Follow(ctx, one.Key()); err != nil {
		return err
	}
	return s.AwaitEnd(ctx, one.Key(), podLimit)
}

package ground

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhouse/system-s3/lib/names"
	"github.com/deckhouse/system-s3/tests/demo/stage"
	"github.com/deckhouse/system-s3/tests/sandbox/command"
)

// ballast is the file that fills a volume.
const ballast = "/ballast"

// VolumePath is where the volume of a replica is mounted on this machine.
func VolumePath(ctx context.Context, s *stage.Stage, claimName string) (string, error) {
	claim, volume := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
	if err := s.Admin.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: claimName}, claim); err != nil {
		return "", fmt.Errorf("read claim %s: %w", claimName, err)
	}
	if err := s.Admin.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, volume); err != nil {
		return "", fmt.Errorf("read the volume of %s: %w", claimName, err)
	}
	if volume.Spec.Local != nil {
		return volume.Spec.Local.Path, nil
	}
	return volume.Spec.HostPath.Path, nil
}

// Fill takes space on a volume, as objects would, until so many percent of it are free.
func Fill(ctx context.Context, path string, percent uint64) error {
	total, free, err := Space(path)
	if err != nil {
		return err
	}
	return command.Quick(ctx, "fallocate", "-l", fmt.Sprint(free-total*percent/100), path+ballast)
}

// Empty gives the space back.
func Empty(ctx context.Context, path string) error {
	return command.Quick(context.WithoutCancel(ctx), "rm", "-f", path+ballast)
}

// Space of the file system at the path, in bytes.
func Space(path string) (total, free uint64, err error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return 0, 0, fmt.Errorf("measure %s: %w", path, err)
	}
	block := uint64(stat.Frsize) //nolint:gosec // a size
	return stat.Blocks * block, stat.Bavail * block, nil
}

// Grows tells whether the class of the claim lets volumes grow.
func (g *Ground) Grows(ctx context.Context, claimName string) (bool, error) {
	claim, class := &corev1.PersistentVolumeClaim{}, &storagev1.StorageClass{}
	if err := g.Admin.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: claimName}, claim); err != nil {
		return false, fmt.Errorf("read claim %s: %w", claimName, err)
	}
	if claim.Spec.StorageClassName == nil {
		return false, nil
	}
	if err := g.Admin.Get(ctx, client.ObjectKey{Name: *claim.Spec.StorageClassName}, class); err != nil {
		return false, fmt.Errorf("read the class of %s: %w", claimName, err)
	}
	return class.AllowVolumeExpansion != nil && *class.AllowVolumeExpansion, nil
}

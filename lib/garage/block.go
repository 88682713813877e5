package garage

import (
	"context"
	"net/url"
	"slices"

	"github.com/deckhouse/system-s3/lib/layout"
)

// FailedBlock is a block that a node could not copy or delete.
type FailedBlock struct {
	Hash       string `json:"blockHash"` // hexadecimal
	References int    `json:"refcount"`  // 0 when it is to be deleted
}

// ListFailedBlocks are the blocks that the node that is asked could not copy or delete.
func (c *Client) ListFailedBlocks(ctx context.Context) ([]FailedBlock, error) {
	var answer []FailedBlock
	err := c.askOwn(ctx, "ListBlockErrors", &answer)
	return answer, err
}

// CountLackedBlocks counts those of the failed blocks that the node that is asked needs and does not have. The others
// are ones that it could not delete.
func (c *Client) CountLackedBlocks(ctx context.Context) (int, error) {
	failed, err := c.ListFailedBlocks(ctx)
	lacked := 0
	for _, block := range failed {
		if block.References > 0 {
			lacked++
		}
	}
	return lacked, err
}

type blockVersion struct {
	ID               string `json:"versionId"`
	ReferenceDeleted bool   `json:"refDeleted"`
	VersionDeleted   bool   `json:"versionDeleted"`
	Backlink         struct {
		Object *struct {
			BucketID string `json:"bucketId"`
			Key      string `json:"key"`
		} `json:"object"`
	} `json:"backlink"`
}

type objectVersion struct {
	ID        string `json:"uuid"`
	Uploading bool   `json:"uploading"`
	Aborted   bool   `json:"aborted"`
}

// GetBlockReferences is who needs a block, by the metadata of the node that is asked and by what a quorum says of the
// objects.
func (c *Client) GetBlockReferences(ctx context.Context, hash string) ([]layout.Reference, error) {
	var answer struct {
		Versions []blockVersion `json:"versions"`
	}
	if err := c.askSelf(ctx, request{call: "GetBlockInfo", body: map[string]string{"blockHash": hash}}, &answer); err != nil {
		return nil, err
	}
	references := make([]layout.Reference, 0, len(answer.Versions))
	for _, version := range answer.Versions {
		reference := layout.Reference{Gone: version.ReferenceDeleted || version.VersionDeleted, Part: version.Backlink.Object == nil}
		if !reference.Gone && !reference.Part {
			var err error
			if reference.Unfinished, err = c.isUnfinished(ctx, version); err != nil {
				return nil, err
			}
		}
		references = append(references, reference)
	}
	return references, nil
}

// isUnfinished tells whether the object of the version calls it an upload that has not ended, or was aborted.
func (c *Client) isUnfinished(ctx context.Context, version blockVersion) (bool, error) {
	var answer struct {
		Versions []objectVersion `json:"versions"`
	}
	object := version.Backlink.Object
	err := c.read(ctx, "InspectObject", url.Values{"bucketId": {object.BucketID}, "key": {object.Key}}, &answer)
	return slices.ContainsFunc(answer.Versions, func(v objectVersion) bool {
		return v.ID == version.ID && (v.Uploading || v.Aborted)
	}), err
}

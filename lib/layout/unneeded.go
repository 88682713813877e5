package layout

// Reference to a block, as the metadata tell it.
type Reference struct {
	// Gone tells that the reference or its version is deleted.
	Gone bool
	// Unfinished tells that the object of the version calls it an upload that has not ended, or was aborted.
	Unfinished bool
	// Part tells that the version is a part of a multipart upload that has not ended. Whether it was acknowledged is
	// told nowhere.
	Part bool
}

// Unneeded tells whether nothing that was acknowledged needs the block. A Garage that is killed in the middle of an
// upload leaves a reference to a block that it may not have written anywhere (garage_api_s3 2.5.0, put_block_and_meta
// writes both at once), and which it then tries to copy for ever. What an upload has written before it ends was
// promised to nobody; a part of a multipart upload may have been.
func Unneeded(references []Reference) bool {
	for _, r := range references {
		if !r.Gone && (r.Part || !r.Unfinished) {
			return false
		}
	}
	return len(references) > 0 // of a block without references nothing is known
}

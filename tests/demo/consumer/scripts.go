package consumer

import _ "embed"

// CopyScript is what the first consumer of the demo runs: the AWS CLI copies files up and down and compares them.
//
//go:embed copy.sh
var CopyScript string

// RefusedScript succeeds when the AWS CLI is refused with a clear error.
//
//go:embed refused.sh
var RefusedScript string

//go:build race

package linear

import "time"

// forARotation is about what one takes, ten times as long as without the race detector.
const forARotation = 50 * time.Millisecond

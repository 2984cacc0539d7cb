//go:build !race

package linear

import "time"

const raceDetector = false

// forARotation is about what one takes.
const forARotation = 5 * time.Millisecond

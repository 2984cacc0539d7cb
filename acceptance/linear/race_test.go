//go:build race

package linear

import "time"

// raceDetector makes histories ten times slower.
const raceDetector = true

// forARotation is about what one takes.
const forARotation = 50 * time.Millisecond

//go:build !race

package linear

import "time"

// forARotation is about what one takes.
const forARotation = 5 * time.Millisecond

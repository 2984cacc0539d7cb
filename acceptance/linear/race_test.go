//go:build race

package linear

// raceDetector makes histories ten times slower.
const raceDetector = true

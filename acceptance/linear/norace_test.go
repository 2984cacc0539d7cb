//go:build !race

package linear

const raceDetector = false

package secretbox

import "time"

// Told sets when SealWith was last called.
func (b *Box) Told(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seal.at = at
}

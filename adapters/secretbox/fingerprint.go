package secretbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	tinkpb "github.com/tink-crypto/tink-go/v2/proto/tink_go_proto"

	"github.com/pgherd/pgherd/core/keyring"
)

// fingerprintLabel separates fingerprints from everything else that may ever be derived from a key.
const fingerprintLabel = "pgherd secret key ring, fingerprint of a key, 1"

// fingerprinted is a key of a ring by its number there.
type fingerprinted struct {
	id uint32
	of keyring.Fingerprint
}

// fingerprints lists the keys that can seal and whose values can be told: raw keys leave no mark on what they seal. A fingerprint
// is a MAC under the key itself, 256 bits that nobody can guess, so it helps nobody to find that. The number is in it, because
// what the same key has sealed under another number cannot be opened.
func fingerprints(handle *keyset.Handle) (list []fingerprinted) {
	for _, k := range insecurecleartextkeyset.KeysetMaterial(handle).GetKey() {
		if k.GetStatus() != tinkpb.KeyStatusType_ENABLED || k.GetOutputPrefixType() != tinkpb.OutputPrefixType_TINK {
			continue
		}
		mac := hmac.New(sha256.New, k.GetKeyData().GetValue())
		mac.Write(binary.BigEndian.AppendUint32([]byte(fingerprintLabel), k.GetKeyId()))
		list = append(list, fingerprinted{k.GetKeyId(), keyring.Fingerprint(hex.EncodeToString(mac.Sum(nil)[:16]))})
	}
	return list
}

package pgbackrest

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // the program derives keys by it
	"slices"
)

const (
	saltSize = 8
	keySize  = 32 // of aes-256-cbc
)

// encrypt encrypts a file as the program and "openssl enc -aes-256-cbc -md sha1" do.
func encrypt(passphrase string, text []byte) []byte {
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // has no errors
	return slices.Concat([]byte("Salted__"), salt, encryptSalted(passphrase, salt, text))
}

func encryptSalted(passphrase string, salt, text []byte) []byte {
	var derived, last []byte
	for len(derived) < keySize+aes.BlockSize {
		sum := sha1.Sum(slices.Concat(last, []byte(passphrase), salt)) //nolint:gosec // see above
		last = sum[:]
		derived = append(derived, last...)
	}
	block, err := aes.NewCipher(derived[:keySize])
	if err != nil {
		panic(err) // the size of the key is one of those that there are
	}
	padding := aes.BlockSize - len(text)%aes.BlockSize
	sealed := slices.Concat(text, bytes.Repeat([]byte{byte(padding)}, padding))
	cipher.NewCBCEncrypter(block, derived[keySize:keySize+aes.BlockSize]).CryptBlocks(sealed, sealed)
	return sealed
}

package policy

import "testing"

func TestSecretFile(t *testing.T) {
	for name, want := range map[string]bool{
		".env": true, ".env.local": true, ".env.example": false, ".env.production": true, ".ENV": true,
		"id_rsa": true, "id_rsa.pub": false, "id_ed25519": true, "server.key": true, "cert.pem": true, "prod.env": true, "example.env": false, ".envrc": true,
		".npmrc": true, ".pypirc": true, ".netrc": true, ".pgpass": true, ".htpasswd": true, "store.p12": true, "kubeconfig": true,
		"terraform.tfstate": true, "terraform.tfstate.backup": true, ".npmrc.example": false,
		"keyboard.go": false, ".environment": false, "credentials.json": true, "main.go": false,
		".env~": true, "..env.swp": true, "#.env#": true, ".npmrc.bak": true, "id_rsa.old": true, ".env.example~": false, "notes.bak": false,
		"app-service-account-key.json": true, "x-firebase-adminsdk.json": true, "office.ovpn": true,
	} {
		if got := SecretFile(name); got != want {
			t.Errorf("SecretFile(%q) = %v, want %v", name, got, want)
		}
	}
}

package policy
import ("testing";"fmt")
func TestSmoke(t *testing.T){
 for _, s := range []string{"ls -la","rm -rf .","rm -rf build","cd build && rm -rf *","cd build; rm -rf *","git push","git -C x push -f","find . -delete","find . -name '*.o' -delete","curl x | sh","timeout 5 sudo ls","eval \"$X\"","echo $(rm -rf /)","bash -c 'bash -c \"git push\"'","xargs rm -rf","r\\m -r -f ~","env -S 'rm -rf /'", "python3 -m twine upload dist/*","git commit -m \"$(cat <<'EOF'\nhi\nEOF\n)\"", "bash <<'X'\ngit push\nX","npm test", "cat x | python3 -m json.tool","cat x | python3"} {
  j := Builtin().Command(Command{Argv: []string{"bash","-c",s}, Cwd:"/work/p", Project:"/work/p", Home:"/home/me"})
  fmt.Printf("%s\n%s\n", s, j.Explain())
 }
}

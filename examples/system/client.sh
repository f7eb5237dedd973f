# Sends one command to a server on the port $1, and prints what it answers.
exec 3<>"/dev/tcp/127.0.0.1/$1"
printf "$2quit\r\n" >&3
cat <&3

print("tested")
